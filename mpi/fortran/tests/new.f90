! What programs of today use of mpi_f08: handles that are compared, error codes that are left out, buffers of any type
! and rank, sections, large counts, attributes, generalized requests, graphs with weights, memory.
module called
  use mpi_f08
  implicit none
  integer :: copies = 0, deletes = 0, freed = 0
contains
  subroutine copied(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    if (extra_state == 2_MPI_ADDRESS_KIND**40 .and. oldcomm /= MPI_COMM_NULL) copies = copies + 1
    attribute_val_out = attribute_val_in * 2
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine gone(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (mod(attribute_val, 2_MPI_ADDRESS_KIND**36) == 0) deletes = deletes + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine asked(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_BYTE, int(extra_state))
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_SOURCE = 3
    ierror = MPI_SUCCESS
  end subroutine

  subroutine released(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    freed = freed + int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine

  subroutine stopped(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine
end module

program new
  use mpi_f08
  use called
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: ranks, me, ierror, keyval, length, old(MPI_STATUS_SIZE), size, i
  integer :: table(4, 4), sources(1), weights(1), into(1), out(1), numbers(8)
  integer(MPI_COUNT_KIND) :: many
  integer(MPI_ADDRESS_KIND) :: value, at, behind
  logical :: flag
  type(MPI_Comm) :: dup, graph
  type(MPI_Request) :: request
  type(MPI_Status) :: status, same
  type(MPI_Datatype) :: kinds(4)
  type(MPI_Errhandler) :: handler
  type(MPI_Group) :: group, half
  type(c_ptr) :: memory, attached
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  character(len=6) :: short
  integer, pointer :: ints(:)
  complex(8) :: z(2, 3, 4)
  integer, allocatable :: counts(:), places(:)
  character(len=4096), target :: room

  call MPI_Init_thread(MPI_THREAD_SINGLE, i, ierror)
  call check(ierror == MPI_SUCCESS .and. i >= MPI_THREAD_SINGLE, 1)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Comm_rank(MPI_COMM_WORLD, me)

  call MPI_Comm_create_keyval(copied, gone, keyval, 2_MPI_ADDRESS_KIND**40)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 2_MPI_ADDRESS_KIND**36)
  call MPI_Comm_dup(MPI_COMM_WORLD, dup)
  call check(dup /= MPI_COMM_WORLD .and. .not. dup == MPI_COMM_NULL, 2)
  call MPI_Comm_get_attr(dup, keyval, value, flag)
  call check(flag .and. value == 2_MPI_ADDRESS_KIND**37 .and. copies == 1, 3)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
  call check(flag .and. value >= 32767 .and. value < 2_MPI_ADDRESS_KIND**32, 4)

  call MPI_Grequest_start(asked, released, stopped, 12_MPI_ADDRESS_KIND, request)
  call MPI_Grequest_complete(request)
  call MPI_Wait(request, status)
  call MPI_Get_count(status, MPI_BYTE, length)
  call check(length == 12 .and. status%MPI_SOURCE == 3 .and. freed == 12, 5)
  call MPI_Get_count(status, MPI_BYTE, many)
  call check(many == 12 .and. request == MPI_REQUEST_NULL, 6)
  call MPI_Status_f082f(status, old)
  call MPI_Status_f2f08(old, same)
  call check(old(MPI_SOURCE) == 3 .and. same%MPI_SOURCE == 3, 7)

  ! A section that is not contiguous is copied by the compiler.
  table = reshape([(i, i = 1, 16)], [4, 4])
  if (me /= 0) table = 0
  call MPI_Bcast(table(2, :), 4, MPI_INTEGER, 0, dup)
  call check(all(table(2, :) == [2, 6, 10, 14]), 8)
  z = 0
  if (me == 0) z = (1, 2)
  call MPI_Bcast(z, 24_MPI_COUNT_KIND, MPI_DOUBLE_COMPLEX, 0, dup)
  call check(all(z == (1, 2)), 9)
  call MPI_Sizeof(z, size)
  call check(size == 16, 10)

  allocate (counts(ranks), places(ranks))
  counts = 1
  places = [(i - 1, i = 1, ranks)]
  numbers = -1
  numbers(me + 1) = me
  call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, numbers, counts, places, MPI_INTEGER, dup)
  call check(all(numbers(1:ranks) == places), 11)
  kinds = MPI_INTEGER
  call MPI_Alltoallw(places, counts, 4 * places, [(MPI_INTEGER, i = 1, ranks)], &
      numbers, counts, 4 * places, [(MPI_INTEGER, i = 1, ranks)], dup)
  call check(all(numbers(1:ranks) == me), 12)

  sources = mod(me + ranks - 1, ranks)
  weights = 10 + me
  call MPI_Dist_graph_create_adjacent(dup, 1, sources, [10 + sources(1)], 1, [mod(me + 1, ranks)], weights, &
      MPI_INFO_NULL, .false., graph)
  call MPI_Dist_graph_neighbors(graph, 1, into, weights, 1, out, MPI_UNWEIGHTED)
  call check(into(1) == sources(1) .and. weights(1) == 10 + sources(1) .and. out(1) == mod(me + 1, ranks), 13)
  call MPI_Neighbor_alltoallw([me], [1], [0_MPI_ADDRESS_KIND], kinds(1:1), into, [1], [0_MPI_ADDRESS_KIND], &
      kinds(1:1), graph)
  call check(into(1) == sources(1), 14)
  call MPI_Comm_free(graph)
  call MPI_Dist_graph_create_adjacent(dup, 1, sources, MPI_UNWEIGHTED, 1, [mod(me + 1, ranks)], MPI_UNWEIGHTED, &
      MPI_INFO_NULL, .false., graph)
  call MPI_Dist_graph_neighbors_count(graph, i, size, flag)
  call check(i == 1 .and. size == 1 .and. .not. flag, 15)
  call MPI_Comm_free(graph)

  call MPI_Alloc_mem(400_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory)
  call c_f_pointer(memory, ints, [100])
  ints = 7
  call MPI_Get_address(ints(1), at)
  call MPI_Get_address(ints(3), behind)
  call check(MPI_Aint_diff(behind, at) == 8 .and. MPI_Aint_add(at, 8_MPI_ADDRESS_KIND) == behind, 16)
  call MPI_Free_mem(ints)
  call MPI_Buffer_attach(room, 4096)
  call MPI_Bsend(me, 1, MPI_INTEGER, me, 1, dup)
  call MPI_Recv(i, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, dup, MPI_STATUS_IGNORE)
  call MPI_Buffer_detach(attached, size)
  call check(i == me .and. size == 4096 .and. c_associated(attached, c_loc(room)), 17)

  ! An address that MPI_BOTTOM makes absolute.
  call MPI_Get_address(i, at)
  call MPI_Type_create_struct(1, [1], [at], [MPI_INTEGER], kinds(1))
  call MPI_Type_commit(kinds(1))
  i = me + 100
  call MPI_Sendrecv(MPI_BOTTOM, 1, kinds(1), me, 2, size, 1, MPI_INTEGER, me, 2, dup, status)
  call check(size == me + 100 .and. status%MPI_TAG == 2, 18)
  call MPI_Type_get_envelope(kinds(1), i, size, length, ierror)
  call check(i == 2 .and. size == 1 .and. length == 1 .and. ierror == MPI_COMBINER_STRUCT, 19)
  kinds(4) = MPI_DATATYPE_NULL
  call MPI_Type_get_contents(kinds(1), 2, 1, 1, numbers, [behind], kinds(4:4))
  call check(kinds(4) == MPI_INTEGER .and. numbers(1) == 1, 20)
  call MPI_Type_free(kinds(1))

  call MPI_Comm_group(dup, group)
  call MPI_Group_range_incl(group, 1, reshape([0, ranks - 1, 2], [3, 1]), half)
  call MPI_Group_size(half, size)
  call check(size == (ranks + 1) / 2, 21)
  call MPI_Group_free(half)
  call MPI_Group_free(group)
  call check(half == MPI_GROUP_NULL, 22)

  ! Without a handler that ends the job, an error is answered.
  call MPI_Comm_set_errhandler(dup, MPI_ERRORS_RETURN)
  call MPI_Comm_get_errhandler(dup, handler)
  call check(handler == MPI_ERRORS_RETURN, 23)
  call MPI_Send(me, 1, MPI_INTEGER, ranks, 1, dup, ierror)
  call MPI_Error_class(ierror, i)
  call check(i == MPI_ERR_RANK, 24)

  name = repeat('x', len(name))
  call MPI_Get_processor_name(name, length)
  call check(len_trim(name) == length .and. length > 0, 25)
  call MPI_Comm_set_name(dup, 'a long name')
  call MPI_Comm_get_name(dup, short, length)
  call check(short == 'a long' .and. length == 6, 26)

  call MPI_Comm_free(dup)
  call check(deletes == 2, 27)
  if (me == 0) print '(a, i0, a)', 'new: ', ranks, ' ranks'
  call MPI_Finalize()
contains
  subroutine check(good, number)
    logical, intent(in) :: good
    integer, intent(in) :: number
    if (good) return
    print '(a, i0)', 'new.f90: wrong is number ', number
    flush (6)
    error stop 1
  end subroutine
end program
